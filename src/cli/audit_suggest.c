/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard audit suggest`: from denials to rules. It reads the log and writes to standard output
 * only. */
#include <errno.h>
#include <jansson.h>

#include "vethguard/base/clock.h"

#include "audit_commands.h"
#include "commands.h"
#include "options.h"
#include "suggest.h"

enum { OPTION_SANDBOX, OPTION_SINCE, OPTION_EVENT, OPTION_JSON, OPTION_HELP };

static const struct option_spec specs[] = {
        {"sandbox", 's', "NAME", "only denials of this sandbox (name or id)"},
        {"since", 'S', "WHEN",
                "only from then on: 30s, 10m, 2h, 1d ago,\nor RFC 3339: 2026-11-20T16:33:36Z"},
        {"event", 'e', "ID", "only the denial with this id"},
        {"json", 'j', NULL, "one object instead of a policy"},
        {"help", 'h', NULL, "this text"},
        {NULL, 0, NULL, NULL},
};

struct wish {
	const char *path, *sandbox, *event;
	int64_t since_ms;
	bool json, help;
	unsigned long strange;
};

static void help(void)
{
	fputs("Usage: vethguard audit suggest FILE [OPTIONS]\n\n"
	      "Prints the smallest rules that would allow what the log has as denied or observed, "
	      "as a\n"
	      "policy file. What may be an attack is named, never suggested. FILE '-' is standard\n"
	      "input. No file is changed.\n\n",
	        stdout);
	options_print(specs, stdout);
	fputs("\nExit status: 0 rules were suggested, 1 there are none, 2 wrong usage or no "
	      "log.\n\n"
	      "Examples:\n"
	      "  vethguard audit suggest vethguard.jsonl --event 0ef28f6900000006\n"
	      "  vethguard audit suggest vethguard.jsonl --since 1h >more.yaml\n"
	      "  vethguard policy check more.yaml\n",
	        stdout);
}

static bool take_option(struct wish *wish, int option, const char *value)
{
	char escaped[128];

	switch (option) {
	case OPTION_SANDBOX:
		wish->sandbox = value;
		return true;
	case OPTION_EVENT:
		wish->event = value;
		return true;
	case OPTION_JSON:
		wish->json = true;
		return true;
	case OPTION_HELP:
		wish->help = true;
		return true;
	default:
		if (audit_when_parse(value, clock_real_ms(), &wish->since_ms))
			return true;
		fprintf(stderr,
		        "vethguard: error: --since %s is no time: use 10m, 2h, 1d or "
		        "2026-11-20T16:33:36Z\n",
		        slice_escape(slice_from_string(value), escaped, sizeof(escaped)));
		return false;
	}
}

/* Options may stand before and behind FILE. */
static bool parse(struct wish *wish, char **argv)
{
	struct options o;
	int option;

	options_init(&o, "vethguard audit suggest", specs, argv);
	for (;;) {
		while ((option = options_next(&o)) >= 0)
			if (!take_option(wish, option, o.value))
				return false;
		if (option == OPTIONS_WRONG)
			return false;
		if (!*o.argv)
			break;
		if (wish->path) {
			fputs("vethguard: error: one FILE at a time\n", stderr);
			return false;
		}
		wish->path = *o.argv++;
	}
	if (wish->path || wish->help)
		return true;
	fputs("vethguard: error: which FILE? See 'vethguard audit suggest --help'.\n", stderr);
	return false;
}

static bool wanted(const struct wish *wish, const json_t *event)
{
	struct slice name = audit_text(event, "device.name"), uid = audit_text(event, "device.uid");

	if (wish->event &&
	        !slice_equals(audit_text(event, "metadata.uid"), slice_from_string(wish->event)))
		return false;
	if (audit_number(event, "time") < wish->since_ms)
		return false;
	return !wish->sandbox || slice_equals(name, slice_from_string(wish->sandbox)) ||
	       slice_equals(uid, slice_from_string(wish->sandbox));
}

static int read_all(struct wish *wish, struct suggest *s)
{
	struct audit_reader reader;
	struct slice line;
	int rc = audit_reader_open(&reader, wish->path);

	if (rc != 0)
		return rc;
	while ((rc = audit_reader_next(&reader, &line)) == 1) {
		json_t *event = reader.too_long
		                        ? NULL
		                        : json_loadb(line.p, line.n,
		                                  JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

		if (json_is_object(event))
			rc = suggest_read(s, event, wanted(wish, event));
		else
			wish->strange++;
		json_decref(event);
		if (rc < 0)
			break;
	}
	audit_reader_close(&reader);
	return rc;
}

static int answer(const struct wish *wish, struct suggest *s)
{
	struct suggest_rules rules;
	int rc = suggest_make(s, &rules);
	int status = rules.count ? 0 : 1;

	if (rc == 0 && wish->json)
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

int audit_suggest(char **argv)
{
	struct wish wish = {.since_ms = INT64_MIN};
	struct suggest s;
	int rc, status = CLI_USAGE;

	if (!parse(&wish, argv))
		return CLI_USAGE;
	if (wish.help) {
		help();
		return 0;
	}
	rc = suggest_init(&s);
	if (rc == 0)
		rc = read_all(&wish, &s);
	if (wish.strange)
		fprintf(stderr, "vethguard: warning: %s: %lu left out that are no events\n",
		        wish.path, wish.strange);
	if (rc == 0)
		status = answer(&wish, &s);
	else if (rc == -E2BIG)
		fprintf(stderr,
		        "vethguard: error: %s: more different denials or findings than can be "
		        "looked at: "
		        "use --since, --sandbox or --event\n",
		        wish.path);
	else
		fprintf(stderr, "vethguard: error: cannot read %s: %s\n", wish.path, strerror(-rc));
	suggest_fini(&s);
	return status;
}
