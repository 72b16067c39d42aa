"""Two windows change one saved recipe: no change is lost, and who wants to know whether it is still theirs is told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import httpx2

from tests.applications.recipes.conftest import Kitchen


def saved(client: httpx2.Client) -> tuple[str, str]:
    """A new recipe's address, and its tag."""
    answer = client.post("/recipes", json={"title": "Soup", "servings": 4})
    assert answer.status_code == 201, answer.text
    return f"/recipes/{answer.json()['id']}", answer.headers["ETag"]


def test_two_changes_at_once_are_both_kept(kitchen: Kitchen) -> None:
    ada = kitchen.served.client()
    address, _ = saved(ada)
    with ThreadPoolExecutor(2) as threads:
        for number in range(20):
            changes = [{name: f"{name} {number}"} for name in ("notes", "author")]
            answers = list(threads.map(lambda change: ada.patch(address, json=change).status_code, changes))
            assert answers == [200, 200]
            recipe = ada.get(address).json()
            assert (recipe["notes"], recipe["author"]) == (f"notes {number}", f"author {number}")


def test_a_change_of_what_was_changed_meanwhile_is_refused_to_who_asks_for_that(kitchen: Kitchen) -> None:
    ada = kitchen.served.client()
    address, first = saved(ada)
    assert ada.get(address).headers["ETag"] == first
    changed = ada.patch(address, json={"notes": "hot"}, headers={"If-Match": first})
    second = changed.headers["ETag"]
    assert (changed.status_code, second == first) == (200, False)
    for method in ("PATCH", "DELETE"):
        refused = ada.request(method, address, json={"notes": "cold"}, headers={"If-Match": first})
        assert (refused.status_code, refused.json()["code"]) == (412, "CHANGED_MEANWHILE")
        assert "read it again" in refused.json()["message"]
    assert ada.get(address).json()["notes"] == "hot"
    # One of several, or what a proxy makes of a tag.
    for before, behind in (('"nonsense", ', ""), ("W/", ""), ("", ', "more"')):
        assert ada.patch(address, json={}, headers={"If-Match": f"{before}{second}{behind}"}).is_success
        second = ada.get(address).headers["ETag"]
    assert ada.delete(address, headers={"If-Match": second}).status_code == 204
    assert ada.patch(address, json={}, headers={"If-Match": second}).status_code == 404


def test_without_a_tag_nothing_is_asked(kitchen: Kitchen) -> None:
    """The clients that there are know no tags: they are not told 428."""
    ada = kitchen.served.client()
    address, _ = saved(ada)
    assert ada.patch(address, json={"servings": 2}).json()["servings"] == 2
    assert ada.delete(address).status_code == 204


def test_what_cannot_be_kept_is_said_over_http_too(kitchen: Kitchen) -> None:
    ada = kitchen.served.client()
    headers = {"Content-Type": "application/json"}
    body = '{"title": "Soup", "ingredients": [{"text": "salt", "quantity_value": NaN}]}'
    refused = ada.post("/recipes", content=body, headers=headers)
    assert (refused.status_code, refused.json()["field"].split(".")[0]) == (422, "ingredients")
    blank = ada.post("/recipes", json={"title": " \n"})
    assert (blank.status_code, blank.json()["field"]) == (422, "title")
    many = ada.post("/recipes", json={"title": "Feast", "ingredients": [f"{n} eggs" for n in range(3_000)]})
    assert (many.status_code, len(many.json()["ingredients"])) == (201, 3_000)
