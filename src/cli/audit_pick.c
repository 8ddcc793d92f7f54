/* SPDX-License-Identifier: Apache-2.0 */
/* Which events, of which file: what `audit show` and `audit suggest` are asked alike. */
#include "vethguard/base/clock.h"

#include "audit_commands.h"
#include "variable_option.h"

static bool take_option(struct audit_pick *pick, char letter, const char *value)
{
	char escaped[128];

	switch (letter) {
	case 'd':
		pick->denied = true;
		return true;
	case 's':
		pick->sandbox = value;
		return true;
	case 'e':
		pick->event = value;
		return true;
	case 'p':
		pick->policy = value;
		return true;
	case 0: /* --var */
		return variable_take(value, pick->variables, &pick->variable_count);
	case 'j':
		pick->json = true;
		return true;
	case 'h':
		pick->help = true;
		return true;
	default: /* 'S' */
		if (audit_when_parse(value, clock_real_ms(), &pick->since_ms))
			return true;
		fprintf(stderr,
		        "vethguard: error: --since %s is no time: use 10m, 2h, 1d or "
		        "2026-11-20T16:33:36Z\n",
		        slice_escape(slice_from_string(value), escaped, sizeof(escaped)));
		return false;
	}
}

bool audit_pick_parse(
        struct audit_pick *pick, const char *command, const struct option_spec *specs, char **argv)
{
	struct options o;
	int option;

	*pick = (struct audit_pick){.since_ms = INT64_MIN};
	options_init(&o, command, specs, argv);
	for (;;) {
		while ((option = options_next(&o)) >= 0)
			if (!take_option(pick, specs[option].letter, o.value))
				return false;
		if (option == OPTIONS_WRONG)
			return false;
		if (!*o.argv)
			break;
		if (pick->path) {
			fputs("vethguard: error: one FILE at a time\n", stderr);
			return false;
		}
		pick->path = *o.argv++;
	}
	if (pick->path || pick->help)
		return true;
	fprintf(stderr, "vethguard: error: which FILE? See '%s --help'.\n", command);
	return false;
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
