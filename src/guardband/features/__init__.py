"""Named features: from DataFrames, dicts or sparse rows to the table of numbers that agents take.

`gb.Features` states once what each column is and between which limits; from then on the same row
of data has the same features, in every process and after every restart.
"""

from guardband.features.columns import Hashed
from guardband.features.features import LARGEST_DIM, Features
from guardband.features.rows import Rows, is_frame, is_named, is_sparse, labels_of

__all__ = ["LARGEST_DIM", "Features", "Hashed", "Rows", "is_frame", "is_named", "is_sparse"]
__all__ += ["labels_of"]
