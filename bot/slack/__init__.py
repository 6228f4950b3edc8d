"""The door of Slack: knows people and Slack, knows no arithmetic."""
