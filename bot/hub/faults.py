"""What huggingface_hub raises, as one sentence that says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bot.hub.error import HubError

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError


@contextmanager
def told(model: str, endpoint: str, *, offline: bool) -> Iterator[None]:
    """Turns what huggingface_hub raises into one HubError that says what to do."""
    from huggingface_hub import errors

    at = _public(endpoint)
    try:
        yield
    except errors.HFValidationError as error:
        raise HubError(f"{model!r} is no model id: write it as owner/name, for example Qwen/Qwen3-8B") from error
    except errors.GatedRepoError as error:
        raise HubError(f"{model} is gated: accept its terms at {at}/{model}, then set HF_TOKEN to a token of that account") from error
    except errors.RepositoryNotFoundError as error:
        raise HubError(
            f"{at} has no model {model}, or it is private: check the spelling, or set HF_TOKEN to a token that may read it"
        ) from error
    except errors.LocalEntryNotFoundError as error:  # huggingface_hub looked in its cache after the hub had failed
        failed = error.__cause__
        raise HubError(
            _answered(at, model, failed) if isinstance(failed, errors.HfHubHTTPError) else _not_here(model, at, offline)
        ) from error
    except errors.EntryNotFoundError as error:
        raise HubError(f"{model} has no config.json (GGUF files alone?): name the original model, or give --config FILE") from error
    except errors.HfHubHTTPError as error:
        raise HubError(_answered(at, model, error)) from error
    except (errors.SafetensorsParsingError, errors.NotASafetensorsRepoError) as error:
        raise HubError(
            f"{model} has a safetensors file that cannot be read: give --config FILE, or report it to the model's owner"
        ) from error
    except no_answer(OSError) as error:
        raise HubError(f"{at} cannot be reached for {model} ({type(error).__name__}): check the network, or give --config FILE") from error


def _not_here(model: str, at: str, offline: bool) -> str:
    if offline:
        return f"{model} is not in the hub's cache and HF_HUB_OFFLINE is set: unset it to fetch the model, or give --config FILE"
    return f"{model} is not in the hub's cache and {at} cannot be reached: check the network or HF_ENDPOINT, or give --config FILE"


def _answered(at: str, model: str, error: "HfHubHTTPError") -> str:
    return f"{at} answered {error.response.status_code} for {model}: try again later, or give --config FILE"


def _public(endpoint: str) -> str:
    """An endpoint as it may be shown: without the name and password that it may carry."""
    scheme, mark, rest = endpoint.rstrip("/").rpartition("://")
    return scheme + mark + rest.rpartition("@")[2]


def no_answer(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """What is raised when the hub did not answer, and `more`: its HTTP library's errors are the first base of huggingface_hub's own."""
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    return HfHubHTTPError.__bases__[0], LocalEntryNotFoundError, *more
