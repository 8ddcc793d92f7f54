# SPDX-License-Identifier: Apache-2.0
"""The hosts of the lab (`make lab`) and their addresses. The addresses are public ones: vethguard dials them as it dials those of the internet."""
SITE4, EVIL4 = "11.99.0.80", "11.99.0.66"
EVIL = "evil.lab.test"
HOME = "/run/lab"  # in the lab's own /run
HOSTS = {"api.lab.test": "an API that wants the key; /whoami says whether it came",
         "www.lab.test": "a web site, and deb.lab.test another",
         "api.github.com": "plays GitHub's API: /user, /repos/acme/site/issues/7",
         "github.com": "serves git's repository acme/site, for the key",
         "api.anthropic.com": "plays a language model's API, by a script",
         EVIL: "a thief; what it was sent is in the file `stolen`"}
NAMES = [*HOSTS, "deb.lab.test"]
