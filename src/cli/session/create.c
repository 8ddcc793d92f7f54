/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard session create`. Only the token goes to standard output; everything else goes to
 * standard error. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/attach/options.h"
#include "cli/commands.h"
#include "cli/option_wrong.h"
#include "cli/session/session.h"
#include "vethguard/base/ip.h"
#include "vethguard/wire/message.h"

static const struct option_spec specs[] = {
        {"policy", 'p', "FILE", "the policy"},
        {"name", 'n', "NAME", "default: one is made up"},
        {"ttl", 0, "TIME", "how long it lasts: 90s, 30m, 2h, 7d; default: 24h"},
        {"from", 0, "NETWORK",
                "it may come from this network only: 203.0.113.0/24;\nmay be repeated"},
        {"certificate", 0, "FILE",
                "its proof is this certificate (PEM) of a client: no token is made"},
        {"by-address", 0, NULL,
                "its proof is the address of its clients, which --from names: no token is made"},
        {"callback", 0, NULL,
                "another proxy asks about its requests, at listen_callbacks: the token\nopens "
                "nothing else"},
        {"var", 0, "KEY=VALUE", "a variable of the policy; may be repeated"},
        {"label", 0, "KEY=VALUE", "a label, which list and the log show; may be repeated"},
        {"observe", 0, NULL, "let pass what the policy would refuse, and log it"},
        CONTROL_SPEC_SOCKET,
        CONTROL_SPEC_JSON,
        CONTROL_SPEC_HELP,
        {NULL, 0, NULL, NULL},
};

struct create {
	struct attach_options options;
	struct attach_words from;
	const char *certificate;
	bool by_address, callback;
};

static void help(void)
{
	fputs("Usage: vethguard session create --policy FILE [OPTIONS]\n\n"
	      "Makes a session: whoever shows its token to the gateway is this sandbox. Prints "
	      "the\n"
	      "token. The daemon keeps only its hash and cannot tell it again.\n\nOptions:\n",
	        stdout);
	options_print(specs, stdout);
	fputs("\nExamples:\n"
	      "  vethguard session create --policy agent.yaml --name agent-7 --ttl 2h\n"
	      "  TOKEN=$(vethguard session create --policy agent.yaml --from 203.0.113.0/24)\n"
	      "  curl --proxy https://gateway.example:8443 --proxy-user session:$TOKEN ...\n"
	      "  vethguard session create --policy agent.yaml --certificate agent.pem\n"
	      "  vethguard session create --policy agent.yaml --by-address --from 10.9.0.7/32\n"
	      "  vethguard session create --policy agent.yaml --callback --from 10.0.0.9/32\n\n"
	      "Exit status: 0 done; 1 the daemon refused; 2 wrong usage; 3 the daemon cannot be\n"
	      "reached.\n",
	        stdout);
}

static bool take(void *context, const char *option, const char *value)
{
	struct create *c = context;
	struct ip_prefix network;

	if (strcmp(option, "certificate") == 0) {
		c->certificate = value;
		return true;
	}
	if (strcmp(option, "by-address") == 0)
		return c->by_address = true;
	if (strcmp(option, "callback") == 0)
		return c->callback = true;
	if (strcmp(option, "from") != 0)
		return attach_option_take(&c->options, option, value);
	if (!ip_prefix_parse(slice_from_string(value), &network))
		return option_wrong(option, value,
		        "not a network such as 203.0.113.0/24 or 2001:db8::/32, with no bits set "
		        "behind the prefix");
	if (c->from.count == MESSAGE_FROM_MAX)
		return option_wrong(option, value, "given too many times");
	c->from.items[c->from.count++] = value;
	return true;
}

static int add_from(json_t *body, const struct create *c)
{
	json_t *from = json_array();

	for (size_t i = 0; i < c->from.count; i++)
		json_array_append_new(from, json_string(c->from.items[i]));
	if (json_object_set_new(body, "from", from) == 0)
		return 0;
	fputs("vethguard: error: no memory\n", stderr);
	return CLI_USAGE;
}

static void tell(const struct control_line *line, const json_t *answer)
{
	const char *expires = control_text(answer, "expires");
	const char *token = control_text(answer, "token");

	if (line->json) {
		control_print_json(answer);
		return;
	}
	control_print_lines(stderr, "vethguard: warning: ", json_object_get(answer, "warnings"));
	fprintf(stderr, "%s: %s, policy %s, until %.*sZ.%s\n", control_text(answer, "name"),
	        control_text(answer, "state"),
	        control_text(json_object_get(answer, "policy"), "name"), (int)strcspn(expires, "."),
	        expires, token[0] ? " The token is not told again:" : "");
	if (token[0])
		puts(token);
}

static int complain(const char *text)
{
	fprintf(stderr, "vethguard: error: %s\nSee 'vethguard session create --help'.\n", text);
	return CLI_USAGE;
}

int session_create_command(int argc, char **argv)
{
	struct create c = {0};
	struct control_line *line = &c.options.line;
	struct control_answer answer;
	json_t *body;
	int rc;

	(void)argc;
	if (!control_line_read(line, "vethguard session create", specs, argv + 1, take, &c))
		return CLI_USAGE;
	if (line->help) {
		help();
		return 0;
	}
	if (line->name_count)
		return complain("create takes options only; a session is named with --name");
	if (!c.options.policy || !*c.options.policy)
		return complain("which policy? Name one with --policy");
	if (c.options.name && !*c.options.name)
		return complain("--name is empty; without it, a name is made up");
	body = json_object();
	rc = attach_add_identity(body, &c.options);
	if (!rc)
		rc = add_from(body, &c);
	if (!rc && c.certificate)
		rc = session_add_certificate(body, c.certificate);
	if (!rc && c.by_address && json_object_set_new(body, "by_address", json_true()) != 0)
		rc = complain("no memory");
	if (!rc && c.callback && json_object_set_new(body, "callback", json_true()) != 0)
		rc = complain("no memory");
	if (!rc)
		rc = control_call(line->socket, "POST", "/sessions", body, &answer);
	json_decref(body);
	if (rc)
		return rc;
	tell(line, answer.json);
	control_answer_free(&answer);
	return 0;
}
