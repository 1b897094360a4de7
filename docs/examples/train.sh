#!/bin/bash
# A small GPT on two machines, as Megatron-LM is started.
MODEL=(--num-layers 16 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048)
PARALLEL=(--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --sequence-parallel)
TRAINING=(--micro-batch-size 2 --global-batch-size 64 --bf16 --overlap-grad-reduce --use-distributed-optimizer --clip-grad 1.0)
torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py "${MODEL[@]}" "${PARALLEL[@]}" "${TRAINING[@]}"
