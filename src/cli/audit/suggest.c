/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard audit suggest`: makes rules from denials. It reads the log and writes only to standard
 * output. */
#include <errno.h>
#include <jansson.h>

#include "cli/audit/audit.h"
#include "cli/commands.h"
#include "cli/policy/policy.h"
#include "cli/audit/suggest.h"

static const struct option_spec specs[] = {
        {"sandbox", 's', "NAME", "only denials of this sandbox (name or id)"},
        AUDIT_SPEC_SINCE,
        {"event", 'e', "ID", "only the denial with this id"},
        {"policy", 'p', "FILE", "leave out what this policy already allows"},
        {"var", 0, "KEY=VALUE", "a variable of that policy; may be repeated"},
        {"json", 'j', NULL, "one object instead of a policy"},
        AUDIT_SPEC_SOCKET,
        {"help", 'h', NULL, "this text"},
        {NULL, 0, NULL, NULL},
};

static void help(void)
{
	fputs("Usage: vethguard audit suggest [FILE] [OPTIONS]\n"
	      "\n"
	      "Prints, as a policy file, the smallest rules that would allow what an audit log has "
	      "as\n"
	      "denied or observed. It names what may be an attack, but suggests no rule for it. "
	      "The log\n"
	      "is FILE ('-' is standard input), or without FILE the one that the daemon writes "
	      "now. No\n"
	      "file is changed.\n"
	      "\n",
	        stdout);
	options_print(specs, stdout);
	fputs("\nExit status: 0 rules were suggested, 1 there are none, 2 wrong usage or no "
	      "log.\n\n"
	      "Examples:\n"
	      "  vethguard audit suggest vethguard.jsonl --event 0ef28f6900000006\n"
	      "  vethguard audit suggest vethguard.jsonl --since 1h >more.yaml\n"
	      "  vethguard policy check more.yaml\n"
	      "  vethguard audit suggest vethguard.jsonl --policy agent.yaml\n",
	        stdout);
}

struct lines {
	unsigned long strange; /* lines that are not events */
	unsigned long wanted;  /* lines that were picked */
};

static int read_all(const struct audit_pick *pick, struct suggest *s, struct lines *lines)
{
	struct audit_reader reader;
	struct slice line;
	int rc = audit_reader_open(&reader, pick->path);

	if (rc != 0)
		return rc;
	while ((rc = audit_reader_next(&reader, &line)) == 1) {
		json_t *event = reader.too_long
		                        ? NULL
		                        : json_loadb(line.p, line.n,
		                                  JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

		const bool wanted = json_is_object(event) && audit_pick_wants(pick, event);

		lines->wanted += wanted;
		if (json_is_object(event))
			rc = suggest_read(s, event, wanted);
		else
			lines->strange++;
		json_decref(event);
		if (rc < 0)
			break;
	}
	audit_reader_close(&reader);
	return rc;
}

static int answer(const struct audit_pick *pick, struct suggest *s, const struct policy *policy)
{
	struct suggest_rules rules;
	int rc = suggest_make(s, policy, &rules);
	int status = rules.count ? 0 : 1;

	if (rc == 0 && pick->json)
		rc = suggest_print_json(s, &rules, stdout);
	else if (rc == 0)
		suggest_print(s, &rules, stdout);
	suggest_rules_free(&rules);
	if (rc != 0 || fflush(stdout) != 0) {
		fputs("vethguard: error: the answer could not be made or written\n", stderr);
		return CLI_USAGE;
	}
	return status;
}

static int suggest(const struct audit_pick *pick, const struct policy *policy)
{
	struct lines lines = {0};
	struct suggest s;
	int status = CLI_USAGE, rc = suggest_init(&s);

	if (rc == 0)
		rc = read_all(pick, &s, &lines);
	if (lines.strange)
		fprintf(stderr,
		        "vethguard: warning: %s: %lu lines that are not events were left out\n",
		        pick->path, lines.strange);
	if (rc == 0 && !lines.wanted && !lines.strange && !pick->json)
		audit_pick_note_none(pick);
	if (rc == 0)
		status = answer(pick, &s, policy);
	else if (rc == -E2BIG)
		fprintf(stderr,
		        "vethguard: error: %s: more different denials or findings than can be "
		        "looked at: use --since, --sandbox or --event\n",
		        pick->path);
	else
		audit_source_unreadable(pick->path, -rc, audit_pick_asked(pick));
	suggest_fini(&s);
	return status;
}

/* Returns false after messages on stderr. Call policy_unload() in either case. */
static bool load(const struct audit_pick *pick, struct policy_loaded *loaded)
{
	struct policy_options options = {.variable_count = pick->variable_count};
	struct diag_list diags = {.count = 0};

	memcpy(options.variables, pick->variables, sizeof(options.variables));
	if (policy_load_file(pick->policy, &options, loaded, &diags) == 0)
		return true;
	diag_print(&diags, stderr);
	return false;
}

int audit_suggest(int argc, char **argv)
{
	struct policy_loaded loaded = {.image = NULL};
	struct audit_pick pick;
	int status;

	(void)argc;
	status = audit_pick_parse(&pick, "vethguard audit suggest", specs, argv + 1);
	if (status != 0)
		return status;
	status = CLI_USAGE;
	if (pick.help) {
		help();
		return 0;
	}
	if (pick.variable_count && !pick.policy)
		fputs("vethguard: error: --var needs --policy FILE, the policy that has the "
		      "variable\n",
		        stderr);
	else if (!pick.policy || load(&pick, &loaded))
		status = suggest(&pick, pick.policy ? &loaded.policy : NULL);
	policy_unload(&loaded);
	return status;
}
