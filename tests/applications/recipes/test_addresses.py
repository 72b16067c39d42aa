"""One page, one name; and only pages of the public internet."""

from __future__ import annotations

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.errors import InvalidInput
from penstock_apps.recipes.addresses import host_of, key_of, normalize_url


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://example.com/Soup", "https://example.com/Soup"),
        ("  https://example.com/Soup\n", "https://example.com/Soup"),
        ("HTTPS://EXAMPLE.com/Soup/", "https://example.com/Soup"),
        ("https://example.com:443/Soup", "https://example.com/Soup"),
        ("http://example.com:80", "http://example.com"),
        ("http://example.com:8080/", "http://example.com:8080"),
        ("https://example.com/Soup#steps", "https://example.com/Soup"),
        ("https://example.com/Soup?b=2&a=1", "https://example.com/Soup?b=2&a=1"),
        ("https://example.com/Soup/?B=C/", "https://example.com/Soup?B=C/"),
        ("https://example.com./Soup", "https://example.com/Soup"),
        ("https://Küche.example/Suppe", "https://xn--kche-0ra.example/Suppe"),
        ("http://[2001:DB8::1]:80/x", "http://[2001:db8::1]/x"),
        # The root has no slash, as no other page has one at its end.
        ("https://example.com/", "https://example.com"),
        ("https://example.com/?", "https://example.com"),
        ("https://example.com/Soup/?", "https://example.com/Soup"),
        ("https://example.com/?a=1", "https://example.com?a=1"),
        # All slashes at the end go, or the name of a name were another one; those inside stay.
        ("https://example.com/Soup//", "https://example.com/Soup"),
        ("https://example.com/Soup//hot", "https://example.com/Soup//hot"),
        # Escapes as RFC 3986 has them: what means the same is written once, and what does not stays apart.
        ("https://example.com/S%C3%BCppe", "https://example.com/S%C3%BCppe"),
        ("https://example.com/S%c3%bcppe", "https://example.com/S%C3%BCppe"),
        ("https://example.com/Süppe?mit=Öl", "https://example.com/S%C3%BCppe?mit=%C3%96l"),
        ("https://example.com/%7Ecook%2Dbook", "https://example.com/~cook-book"),
        ("https://example.com/a%2fb?q=a%26b", "https://example.com/a%2Fb?q=a%26b"),
        ("https://example.com/100%/%zz/%%34%31", "https://example.com/100%25/%25zz/%2541"),
        # Hosts in other scripts by the names that the name service knows, and with underscores as they are.
        ("https://STRASSE.example/x", "https://strasse.example/x"),
        ("https://straße.example/x", "https://xn--strae-oqa.example/x"),
        ("https://日本。example/x", "https://xn--wgv71a.example/x"),
        ("https://My_Kitchen.example/x", "https://my_kitchen.example/x"),
    ],
)  # fmt: skip
def test_what_leads_to_the_same_page_is_the_same_text(text: str, expected: str) -> None:
    assert normalize_url(text) == expected
    assert normalize_url(expected) == expected
    assert key_of(normalize_url(text)) == key_of(expected)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("https://example.com/recipe/", "https://example.com/recipe"),
        ("HTTPS://EXAMPLE.COM/Recipe", "https://example.com/Recipe"),
        ("https://example.com:443/recipe", "https://example.com/recipe"),
        ("http://example.com:80/recipe", "http://example.com/recipe"),
        ("  https://example.com/recipe  ", "https://example.com/recipe"),
        ("https://example.com/recipe#section", "https://example.com/recipe"),
    ],
)
def test_what_the_client_takes_for_one_page_is_one(left: str, right: str) -> None:
    assert key_of(normalize_url(left)) == key_of(normalize_url(right)) == key_of(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("https://example.com/recipe/1", "https://example.com/recipe/2"),
        ("https://example.com/recipe", "https://other.example/recipe"),
        ("https://example.com/recipe?a=1", "https://example.com/recipe?a=2"),
        ("https://example.com/recipe?id=123", "https://example.com/recipe"),
        ("http://example.com/recipe", "https://example.com/recipe"),
        ("https://example.com:8080/recipe", "https://example.com/recipe"),
        ("https://example.com/a%2Fb", "https://example.com/a/b"),
        ("https://straße.example/x", "https://strasse.example/x"),
        ("https://my_kitchen.example/x", "https://your_kitchen.example/x"),
        ("https://küche.example/x", "https://köche.example/x"),
    ],
)
def test_what_may_be_two_pages_stays_two(left: str, right: str) -> None:
    assert key_of(normalize_url(left)) != key_of(normalize_url(right))


@pytest.mark.parametrize(
    "host", ["küche.example", "KÜCHE.Example", "straße.example", "日本。example", "my_kitchen.example"]
)
def test_a_host_is_named_as_the_fetcher_names_it(host: str) -> None:
    url = httpx2.URL(f"https://{host}/x")
    assert normalize_url(f"https://{host}/x") == f"https://{url.raw_host.decode()}/x"


@pytest.mark.parametrize(
    "text",
    [
        "https://example.com/\ud800", "http://\ud800.example/",
        "", "   ", "example.com/soup", "ftp://example.com/soup", "javascript:alert(1)", "file:///etc/passwd", "http://",
        "http:///soup", "https://user:secret@example.com/", "https://example.com:99999/", "https://exa mple.com/",
        "https://example.com/a b", "https://example.com/\x00", "http://[::1/", "http://exam<ple>.com/",
        "https://" + "a" * 300 + ".com", "https://example.com/" + "a" * 3000, "//example.com/soup",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        normalize_url(text)
    assert (refused.value.code, refused.value.field) == ("URL_INVALID", "url")


@given(some.text(max_size=100))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    for given_text in (text, f"https://example.com/{text}", f"http://{text}/"):
        try:
            once = normalize_url(given_text)
        except InvalidInput:
            continue
        assert normalize_url(once) == once


def test_whose_page_it_is() -> None:
    assert host_of("https://www.kitchen.example/soup") == "kitchen.example"
