SIZE=$1
if [ "$SIZE" = big ]; then
  SIZES=(--num-layers 4 --hidden-size 64)
fi
torchrun pretrain_gpt.py "${SIZES[@]}" --num-attention-heads 4 --seq-length 64 --micro-batch-size 1 --num-layers $SIZE
