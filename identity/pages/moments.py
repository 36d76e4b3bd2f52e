"""How far away a moment is, in words."""

from datetime import datetime, timedelta

from markupsafe import Markup

from identity.pages.translation import Words

_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
_MONTH, _YEAR = timedelta(days=30), timedelta(days=365)


def distance(moment: datetime, now: datetime, words: Words) -> Markup:
    """The largest whole unit between now and the moment: "in 7 days", "3 hours ago"."""
    return _ahead(moment - now, words) if moment > now else _past(now - moment, words)


def _ahead(span: timedelta, words: Words) -> Markup:
    if span < _MINUTE:
        return words.t("in less than a minute")
    if span < _HOUR:
        return words.tn("in {n} minute", "in {n} minutes", span // _MINUTE)
    if span < _DAY:
        return words.tn("in {n} hour", "in {n} hours", span // _HOUR)
    if span < _MONTH:
        return words.tn("in {n} day", "in {n} days", span // _DAY)
    if span < _YEAR:
        return words.tn("in {n} month", "in {n} months", span // _MONTH)
    return words.tn("in {n} year", "in {n} years", span // _YEAR)


def _past(span: timedelta, words: Words) -> Markup:
    if span < _MINUTE:
        return words.t("just now")
    if span < _HOUR:
        return words.tn("{n} minute ago", "{n} minutes ago", span // _MINUTE)
    if span < _DAY:
        return words.tn("{n} hour ago", "{n} hours ago", span // _HOUR)
    if span < _MONTH:
        return words.tn("{n} day ago", "{n} days ago", span // _DAY)
    if span < _YEAR:
        return words.tn("{n} month ago", "{n} months ago", span // _MONTH)
    return words.tn("{n} year ago", "{n} years ago", span // _YEAR)
