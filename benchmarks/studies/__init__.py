"""One file a study of the paper, or of our own additions; here they are by name, the most valuable first."""

from studies import (
    batch_size,
    fifty,
    jacobian,
    overfitting,
    real,
    rows,
    samples,
    sign,
    tables,
    timestep,
    units,
    variants,
)
from sweep.study import Size, Study

STUDIES: dict[str, Study] = {
    study.STUDY.name: study.STUDY
    for study in (
        tables,
        real,
        samples,
        fifty,
        variants,
        timestep,
        overfitting,
        batch_size,
        jacobian,
        sign,
        rows,
        units,
    )
}

__all__ = ["STUDIES", "Size", "Study"]
