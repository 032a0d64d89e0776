"""Two kernels that one function makes; run as a program, it prints what those asked for return."""

from __future__ import annotations

import math
import sys

from guardband.kernels._jit import Kernel, rare_kernel


def make(number: int) -> Kernel:
    @rare_kernel
    def count(x):
        """Return `number` for every whole number below x; so long that it is called, not copied."""
        total = 0.0
        for k in range(x):
            for f in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0):
                if math.exp(-f * k) + math.sin(f * k) ** 2 + math.cos(f * k) ** 2 >= 1.0 + f * k:
                    total += math.log1p(f * k)
                if math.sqrt(f + k) * math.tanh(f * k) + math.atan(k * f) < 0.0:
                    total -= math.expm1(f * k)
            total += number
        return total

    @rare_kernel
    def twice(x):
        return count(x) + count(x + 1)

    return twice


TWINS = {"one": make(1), "ten": make(10)}

if __name__ == "__main__":
    print(*[TWINS[name](5) for name in sys.argv[1:]])
