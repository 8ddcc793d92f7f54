/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. */
#include <stdio.h>
#include <string.h>

#include "connect.h"
#include "vethguard/base/log.h"
#include "vethguard/base/options.h"
#include "vethguard/base/version.h"
#include "vethguard/policy/url.h"

#define STATUS_FAILED 125
#define PORT_DEFAULT 3128
#define BUNDLE_DEFAULT "/tmp/vethguard-connect.pem"

enum {
	OPTION_GATEWAY,
	OPTION_ADDRESS,
	OPTION_TOKEN_FILE,
	OPTION_GATEWAY_CA,
	OPTION_CA,
	OPTION_BUNDLE,
	OPTION_PORT,
	OPTION_REDIRECT,
	OPTION_TRUST,
	OPTION_DEBUG,
	OPTION_VERSION,
	OPTION_HELP
};

static const struct option_spec specs[] = {
        [OPTION_GATEWAY] = {"gateway", 0, "URL", "the gateway: https://NAME[:PORT]"},
        [OPTION_ADDRESS] = {"address", 0, "ADDRESS",
                "the gateway's address, where its name cannot be resolved"},
        [OPTION_TOKEN_FILE] = {"token-file", 0, "FILE",
                "the session's token, read for each connection;\n"
                "default: the variable VETHGUARD_TOKEN"},
        [OPTION_GATEWAY_CA] = {"gateway-ca", 0, "FILE",
                "CAs that the gateway's certificate is verified with (PEM);\n"
                "default: the system's"},
        [OPTION_CA] = {"ca", 0, "FILE",
                "the session's CA (`vethguard env NAME --format pem`), which\n"
                "programs have to trust"},
        [OPTION_BUNDLE] = {"bundle", 0, "FILE",
                "where the system's CAs and the session's are written together;\n"
                "default: " BUNDLE_DEFAULT},
        [OPTION_PORT] = {"port", 0, "PORT", "on loopback; default: 3128"},
        [OPTION_REDIRECT] = {"redirect", 0, NULL,
                "as root: programs need no proxy; TCP, DNS and UDP arrive here, the\n"
                "rest is refused"},
        [OPTION_TRUST] = {"trust", 0, NULL, "as root: add the CA to the system's trust stores"},
        [OPTION_DEBUG] = {"debug", 0, NULL, "log each connection"},
        [OPTION_VERSION] = {"version", 0, NULL, "the version"},
        [OPTION_HELP] = {"help", 'h', NULL, "this text"},
        {NULL, 0, NULL, NULL},
};

static void help(void)
{
	fputs("Usage: vethguard-connect --gateway URL [OPTIONS] [-- COMMAND [ARGUMENT...]]\n\n"
	      "Takes the connections of this sandbox's programs to a gateway of vethguard, for "
	      "programs that\n"
	      "cannot speak to it themselves. On 127.0.0.1 and ::1 it is an HTTP proxy and SOCKS5 "
	      "without a\n"
	      "password, also for UDP (UDP ASSOCIATE). With COMMAND it runs that, with the "
	      "variables for proxy and CA, and ends "
	      "with it;\n"
	      "without, it serves until SIGTERM.\n\nOptions:\n",
	        stdout);
	options_print(specs, stdout);
	fputs("\nExit status: the command's, or 128 and the number of the signal that ended it; "
	      "125 if\n"
	      "vethguard-connect fails. This is vethguard " VERSION_TEXT ".\n",
	        stdout);
}

static bool wrong(const char *option, const char *value, const char *expected)
{
	char shown[96];

	fprintf(stderr, "vethguard-connect: error: --%s \"%s\": %s is expected\n", option,
	        slice_escape(slice_from_string(value), shown, sizeof(shown)), expected);
	return false;
}

static bool read_gateway(struct arguments *a, const char *value)
{
	struct url url;

	if (!url_parse(slice_from_string(value), &url) || url.scheme != POLICY_HTTPS ||
	        url.query.n || !slice_equals(url.path, SLICE("/")))
		return wrong("gateway", value, "https://NAME or https://NAME:PORT");
	if (url.authority.host_n)
		snprintf(a->gateway, sizeof(a->gateway), "%s", url.authority.host);
	else
		ip_format(&url.authority.address, a->gateway);
	if (!url.authority.host_n)
		a->address = url.authority.address;
	a->gateway_port = url.authority.port;
	return true;
}

static bool read_port(struct arguments *a, const char *value)
{
	uint64_t port;

	if (!slice_to_u64(slice_from_string(value), 65535, &port) || !port)
		return wrong("port", value, "a number from 1 to 65535");
	a->port = (uint16_t)port;
	return true;
}

static bool take(struct arguments *a, int option, const char *value)
{
	switch (option) {
	case OPTION_GATEWAY:
		return read_gateway(a, value);
	case OPTION_ADDRESS:
		return ip_parse(slice_from_string(value), &a->address) ||
		       wrong("address", value, "an IPv4 or IPv6 address");
	case OPTION_TOKEN_FILE:
		a->token_file = value;
		return true;
	case OPTION_GATEWAY_CA:
		a->gateway_ca = value;
		return true;
	case OPTION_CA:
		a->ca = value;
		return true;
	case OPTION_BUNDLE:
		a->bundle = value;
		return true;
	case OPTION_PORT:
		return read_port(a, value);
	case OPTION_REDIRECT:
		return a->redirect = true;
	case OPTION_TRUST:
		return a->trust = true;
	default:
		return a->debug = true;
	}
}

static bool are_whole(const struct arguments *a)
{
	const char *missing = NULL;

	if (!a->gateway_port)
		missing = "--gateway URL is missing";
	else if (a->trust && !a->ca)
		missing = "--trust needs --ca FILE";
	if (missing)
		fprintf(stderr, "vethguard-connect: error: %s; see vethguard-connect --help\n",
		        missing);
	return !missing;
}

bool arguments_read(struct arguments *a, char **argv, int *status)
{
	struct options o;
	int option;

	*a = (struct arguments){.port = PORT_DEFAULT, .bundle = BUNDLE_DEFAULT};
	*status = STATUS_FAILED;
	options_init(&o, "vethguard-connect", specs, argv);
	while ((option = options_next(&o)) >= 0) {
		if (option == OPTION_HELP || option == OPTION_VERSION) {
			if (option == OPTION_HELP)
				help();
			else
				puts("vethguard-connect " VERSION_TEXT);
			*status = fflush(stdout) == 0 ? 0 : STATUS_FAILED;
			return false;
		}
		if (!take(a, option, o.value))
			return false;
	}
	if (option == OPTIONS_WRONG || !are_whole(a))
		return false;
	a->command = o.argv[0] ? o.argv : NULL;
	return true;
}
