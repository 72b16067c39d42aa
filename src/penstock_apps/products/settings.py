"""Which retailers products are looked up at, and how often."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from penstock.application import ApplicationSettings, Bytes, Seconds


class ProductSettings(ApplicationSettings):
    """The settings of the products application."""

    providers: Annotated[
        str,
        Field(
            validation_alias="PRODUCT_PROVIDERS",
            description="The path of a JSON file that describes the retailers products are at.",
        ),
    ] = ""
    max_attempts_error: Annotated[
        int,
        Field(
            validation_alias="MAX_ATTEMPTS_ERROR", ge=1, le=100, description="Tries of a product whose look-up fails."
        ),
    ] = 3
    max_attempts_not_found: Annotated[
        int,
        Field(
            validation_alias="MAX_ATTEMPTS_NOT_FOUND",
            ge=1,
            le=100,
            description="Tries of a product that is not found, each asking another way.",
        ),
    ] = 2
    picture_timeout: Annotated[
        Seconds,
        Field(
            validation_alias="PRODUCT_PICTURE_TIMEOUT",
            description="The longest it may take to find the barcodes in a picture; its process is killed then.",
        ),
    ] = 30.0
    picture_memory: Annotated[
        Bytes,
        Field(
            validation_alias="PRODUCT_PICTURE_MEMORY",
            description="The most memory of the process that finds them; a picture that needs more fails.",
        ),
    ] = 768 * 1024**2
