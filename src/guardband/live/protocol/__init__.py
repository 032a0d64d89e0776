"""What clients, the server and the command line share: a space's settings, messages and sums."""
