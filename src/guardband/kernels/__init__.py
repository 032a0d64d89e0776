"""The numbers: compiled kernels and their types; no I/O, no randomness, no exceptions.

Arguments of kernels are named for what they are. In `types`, which states the shapes: `state` and
`shared` (`State`), `own`, `pooled`, `total` and `part` (`Statistic`), `estimate`, `terms`, `given`
(`RoundInput`), `known` (`Knowledge`), `scores` and `outcome`. In `environment`: `tasks`
(`TaskTable`), `env` (`EnvironmentArrays`), `draws`, `clock` (`PoolingClock`), `metrics`, `trace`
and `played`. `numbers` is the array of a group of agents, see `state`; `settings` (M, TERMS + 2)
is what `types.pack` returns; `coords` and `index` are the features that a task uses; `beta` is
the radius of the confidence set ||theta - theta-hat||_V <= beta. Other arrays are described where
they are taken.
"""
