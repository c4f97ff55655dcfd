"""A request as a scraper makes it."""

import urllib.error
import urllib.request

LIMIT_S = 120


def get(url: str, method: str = "GET") -> tuple[int, str]:
    """Status and text, whatever the status is."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=LIMIT_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
