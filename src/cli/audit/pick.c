/* SPDX-License-Identifier: Apache-2.0 */
/* The options that `audit show` and `audit suggest` share: which events of which file. */
#include <string.h>

#include "vethguard/base/clock.h"

#include "cli/audit/audit.h"
#include "cli/commands.h"
#include "cli/variable_option.h"

static bool take_since(struct audit_pick *pick, const char *value)
{
	char escaped[128];

	if (audit_when_parse(value, clock_real_ms(), &pick->since_ms))
		return true;
	fprintf(stderr,
	        "vethguard: error: --since %s is not a time: use 10m, 2h, 1d or "
	        "2026-11-20T16:33:36Z\n",
	        slice_escape(slice_from_string(value), escaped, sizeof(escaped)));
	return false;
}

static bool take_option(struct audit_pick *pick, const char *name, const char *value)
{
	const struct {
		const char *name;
		const char **text;
	} texts[] = {{"sandbox", &pick->sandbox}, {"event", &pick->event},
	        {"policy", &pick->policy}, {"socket", &pick->socket}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(name, texts[i].name) == 0) {
			*texts[i].text = value;
			return true;
		}
	if (strcmp(name, "since") == 0)
		return take_since(pick, value);
	if (strcmp(name, "var") == 0)
		return variable_take(value, pick->variables, &pick->variable_count);
	pick->denied |= strcmp(name, "denied") == 0;
	pick->json |= strcmp(name, "json") == 0;
	pick->help |= strcmp(name, "help") == 0;
	return true;
}

/* Finds the file after all options were read. */
static int find_file(struct audit_pick *pick, const char *command)
{
	int rc;

	if (pick->help)
		return 0;
	if (pick->path && pick->socket) {
		fputs("vethguard: error: FILE or --socket, not both\n", stderr);
		return CLI_USAGE;
	}
	if (pick->path)
		return 0;
	rc = audit_source_ask(&pick->source, pick->socket, command);
	pick->path = pick->source.path;
	return rc;
}

int audit_pick_parse(
        struct audit_pick *pick, const char *command, const struct option_spec *specs, char **argv)
{
	struct options o;
	int option;

	*pick = (struct audit_pick){.since_ms = INT64_MIN};
	options_init(&o, command, specs, argv);
	for (;;) {
		while ((option = options_next(&o)) >= 0)
			if (!take_option(pick, specs[option].name, o.value))
				return CLI_USAGE;
		if (option == OPTIONS_WRONG)
			return CLI_USAGE;
		if (!*o.argv)
			break;
		if (pick->path) {
			fputs("vethguard: error: one FILE at a time\n", stderr);
			return CLI_USAGE;
		}
		pick->path = *o.argv++;
	}
	return find_file(pick, command);
}

bool audit_pick_asked(const struct audit_pick *pick)
{
	return pick->path == pick->source.path;
}

bool audit_pick_wants(const struct audit_pick *pick, const struct json_t *event)
{
	struct slice name = audit_text(event, "device.name"), uid = audit_text(event, "device.uid");

	if (pick->event && !audit_row_is_about(event, pick->event))
		return false;
	if (audit_number(event, "time") < pick->since_ms)
		return false;
	return !pick->sandbox || slice_equals(name, slice_from_string(pick->sandbox)) ||
	       slice_equals(uid, slice_from_string(pick->sandbox));
}

void audit_pick_note_none(const struct audit_pick *pick)
{
	const bool narrowed = pick->sandbox || pick->event || pick->since_ms != INT64_MIN;

	if (pick->denied && !narrowed)
		fprintf(stderr, "vethguard: note: nothing in %s was denied or dropped\n",
		        pick->path);
	else if (narrowed)
		fprintf(stderr, "vethguard: note: no event in %s matches%s%s%s%s\n", pick->path,
		        pick->denied ? " --denied" : "", pick->sandbox ? " --sandbox" : "",
		        pick->event ? " --event" : "",
		        pick->since_ms != INT64_MIN ? " --since" : "");
	else
		fprintf(stderr, "vethguard: note: %s has no events\n", pick->path);
}
