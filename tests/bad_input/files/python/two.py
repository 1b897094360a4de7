from torchtitan.trainer import Trainer


def small() -> Trainer.Config:
    return Trainer.Config(model_spec=model_registry("8B"))


def large() -> Trainer.Config:
    return Trainer.Config(model_spec=model_registry("70B"))
