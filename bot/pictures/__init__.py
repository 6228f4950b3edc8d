"""The budget of every rank as a picture: SVG for the page, PNG for Slack, and the same in words."""

from bot.pictures.bars import Bar, Part, bars_of
from bot.pictures.marks import NARROW, WIDE
from bot.pictures.png import budget_png
from bot.pictures.svg import budget_svg
from bot.pictures.words import alt_text

__all__ = ["NARROW", "WIDE", "Bar", "Part", "alt_text", "bars_of", "budget_png", "budget_svg"]
