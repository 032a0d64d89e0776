"""Safe, distributed linear bandits."""
