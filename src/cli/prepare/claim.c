/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard claim`: gives a prepared namespace its identity. */
#include <stdio.h>
#include <string.h>

#include "cli/attach/options.h"
#include "cli/commands.h"
#include "cli/prepare/commands.h"

struct claim_options {
	struct attach_options identity;
	const char *like;
	bool no_wait;
};

static const struct option_spec specs[] = {
        {"policy", 'p', "FILE", "the policy to enforce (required)"},
        {"netns", 0, "PATH",
                "claim this one of the prepared namespaces; default:\n"
                "the one that has been ready for longest"},
        {"like", 0, "NAME",
                "what runs here is a clone of what ran in sandbox\n"
                "NAME: keep its names' addresses and its placeholders"},
        {"label", 'l', "KEY=VALUE", "a label, to find the sandbox by; may be repeated"},
        {"var", 0, "KEY=VALUE",
                "a variable of the policy's hosts and paths; may\n"
                "be repeated"},
        {"ttl", 0, "TIME", "end by itself after 90s, 30m, 2h, 7d; a number\nalone: seconds"},
        {"observe", 0, NULL,
                "refuse only what no policy can permit, and log\nwhat the policy would have "
                "refused"},
        {"no-wait", 0, NULL,
                "do not wait until its worker serves: clients\n"
                "inside wait instead"},
        CONTROL_SPEC_SOCKET, CONTROL_SPEC_JSON, CONTROL_SPEC_HELP, {NULL, 0, NULL, NULL}};

static void help(void)
{
	fputs("Usage: vethguard claim NAME --policy FILE [OPTIONS]\n\n"
	      "Guards one of the namespaces of 'vethguard prepare' as sandbox NAME under a "
	      "policy.\n"
	      "It is an attached sandbox from then on; 'vethguard release' ends it.\n\nOptions:\n",
	        stdout);
	options_print(specs, stdout);
	fputs("\nExamples:\n"
	      "  vethguard claim agent-7 --policy agent.yaml --var repo=acme/web --label job=4711\n"
	      "  vethguard claim vm-2 --policy vm.yaml --netns /run/netns/vm-2 --like golden\n\n"
	      "Exit status: 0 done; 1 the daemon refused, or none is ready; 2 wrong usage; 3 the\n"
	      "daemon cannot be reached.\n",
	        stdout);
}

static bool take(void *context, const char *option, const char *value)
{
	struct claim_options *o = context;

	if (strcmp(option, "like") == 0)
		o->like = value;
	else if (strcmp(option, "no-wait") == 0)
		o->no_wait = true;
	else
		return attach_option_take(&o->identity, option, value);
	return true;
}

static int build(json_t *body, const struct claim_options *o)
{
	int rc = attach_add_identity(body, &o->identity);

	if (!rc)
		rc = attach_add_netns(body, o->identity.netns);
	if (!rc && o->like && json_object_set_new(body, "like", json_string(o->like)) != 0) {
		fputs("vethguard: error: --like: a name has to be UTF-8\n", stderr);
		rc = CLI_USAGE;
	}
	if (!rc && !o->no_wait)
		json_object_set_new(body, "wait", json_true());
	return rc;
}

static int call(const struct claim_options *o)
{
	struct control_answer answer;
	json_t *body = json_object();
	int rc = body ? build(body, o) : CONTROL_REFUSED;

	if (!rc)
		rc = control_call(o->identity.line.socket, "POST", "/claim", body, &answer);
	json_decref(body);
	if (rc)
		return rc;
	control_print_lines(
	        stderr, "vethguard: warning: ", json_object_get(answer.json, "warnings"));
	if (o->identity.line.json) {
		control_print_json(answer.json);
	} else {
		control_print_attached(answer.json);
		printf("Its network: ip netns exec, or nsenter --net=%s\n",
		        control_text(json_object_get(answer.json, "attachment"), "netns"));
	}
	control_answer_free(&answer);
	return 0;
}

int cli_claim(int argc, char **argv)
{
	struct claim_options o = {.like = NULL};
	struct control_line *line = &o.identity.line;
	const char *what = NULL;

	(void)argc;
	if (!control_line_read(line, "vethguard claim", specs, argv + 1, take, &o))
		return CLI_USAGE;
	if (line->help) {
		help();
		return 0;
	}
	if (line->name_count != 1)
		what = "which name shall the sandbox have? 'vethguard claim NAME --policy FILE'";
	else if (!o.identity.policy || !*o.identity.policy)
		what = "which policy? Name one with --policy";
	if (what) {
		fprintf(stderr, "vethguard: error: %s\nSee 'vethguard claim --help'.\n", what);
		return CLI_USAGE;
	}
	o.identity.name = line->names[0];
	return call(&o);
}
