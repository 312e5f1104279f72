"""What to do where bubblewrap does not come up: from its message to one line to run."""

from __future__ import annotations

from collections.abc import Mapping

MISSING_BWRAP = "bubblewrap is not installed: `sudo apt-get install bubblewrap` (or `sudo dnf install bubblewrap`)"
MISSING_PRLIMIT = "/usr/bin/prlimit is not installed: `sudo apt-get install util-linux`"

NO_DRIVER = "CUDA does not start: `sudo nvidia-modprobe -u -c=0`, then look at `nvidia-smi`"
NO_FILTER = "there is a filter of system calls for x86_64 and aarch64 only"
STRANGE = "it should hold here: please report what `labcoat doctor --json` prints"

APPARMOR = (
    "Ubuntu's AppArmor keeps bubblewrap from making user namespaces: "
    "`printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile bwrap /usr/bin/bwrap flags=(unconfined) "
    "{\\n  userns,\\n}\\n' | sudo tee /etc/apparmor.d/bwrap && sudo systemctl reload apparmor`"
)
NO_NAMESPACES = "user namespaces are off: `sudo sysctl -w user.max_user_namespaces=15000`"
NO_CLONE = "unprivileged user namespaces are off: `sudo sysctl -w kernel.unprivileged_userns_clone=1`"
CONTAINER_PROC = "this container hides parts of /proc: start it with `docker run --security-opt systempaths=unconfined --security-opt seccomp=unconfined --security-opt apparmor=unconfined`"  # noqa: E501
CONTAINER = "this container or machine refuses new namespaces: start it with `docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined`"  # noqa: E501
TOO_OLD = "this bubblewrap is older than 0.8.0: `sudo apt-get install -t stable bubblewrap` or install 0.8.0 or later"


def no_groups(version: int, root: bool, systemd: bool) -> str:
    """What gives us control groups, so that the kernel counts memory and not only a watcher.

    Args:
        version: of the control groups of this machine.
        root: whether we are root, and still may make none: then we are in a container.
        systemd: whether systemd runs programs for this user.
    """
    if root:
        return (
            "this container may make no control groups: "
            "start it with `docker run --cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup:rw`"
        )
    if version == 2 and systemd:
        return (
            "this session may make no control groups: start it as "
            "`systemd-run --user --scope -p Delegate=yes labcoat run ...`"
        )
    return "this user may make no control groups, root may and drops its rights for workers: `sudo labcoat run ...`"


def remedy(stderr: str, sysctls: Mapping[str, str]) -> str:
    """One sentence for what ``bwrap`` printed when it failed, ending with the command that helps."""
    said = stderr.strip().splitlines()[-1] if stderr.strip() else "bwrap said nothing"
    if "Unknown option" in said:
        return f"{TOO_OLD} ({said})"
    if "mount proc" in said:
        return f"{CONTAINER_PROC} ({said})"
    if any(word in said for word in ("uid map", "loopback", "namespace", "clone", "Operation not permitted")):
        if sysctls.get("kernel.apparmor_restrict_unprivileged_userns") == "1":
            return f"{APPARMOR} ({said})"
        if sysctls.get("user.max_user_namespaces") == "0":
            return f"{NO_NAMESPACES} ({said})"
        if sysctls.get("kernel.unprivileged_userns_clone") == "0":
            return f"{NO_CLONE} ({said})"
        return f"{CONTAINER} ({said})"
    return said
