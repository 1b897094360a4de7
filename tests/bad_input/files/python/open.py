from torchtitan.trainer import Trainer

config = Trainer.Config(
    training=TrainingConfig(seq_len=8192,
