"""For operators: audits of decisions, exports, and backups."""
