"""Jobs of torchtitan."""
from torchtitan.trainer import Trainer


def llama3_8b() -> Trainer.Config:
    spec = model_registry("8B")
    return Trainer.Config(
        model_spec=spec,
        training=TrainingConfig(local_batch_size=1, seq_len=8_192, max_norm=-1.0),
        model_converters=ModelConvertersContainer.Config(
            converters=[Float8LinearConverter.Config(enable_fsdp_float8_all_gather=True)],
        ),
        compile=CompileConfig(enable=True, components=["model", 'loss']),
    )
