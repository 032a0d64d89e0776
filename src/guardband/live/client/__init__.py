"""The agent in the user's own process: journal, learning, and errands to the coordinator."""
