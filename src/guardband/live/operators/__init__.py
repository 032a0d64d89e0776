"""What operators ask afterwards: audits, exports, backups."""
