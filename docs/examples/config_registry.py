"""Jobs of torchtitan, as its models keep them."""

from torchtitan.config import ActivationCheckpointConfig, CompileConfig, ParallelismConfig, TrainingConfig
from torchtitan.trainer import Trainer

from . import model_registry


def llama3_8b() -> Trainer.Config:
    return Trainer.Config(
        model_spec=model_registry("8B"),
        training=TrainingConfig(local_batch_size=1, seq_len=8192),
        activation_checkpoint=ActivationCheckpointConfig(mode="selective"),
        compile=CompileConfig(enable=True),
    )


def llama3_8b_tensor() -> Trainer.Config:
    config = llama3_8b()
    config.parallelism = ParallelismConfig(tensor_parallel_degree=2)
    return config
