/* SPDX-License-Identifier: Apache-2.0 */
/* What a deny rule refuses is opened by an exception of that rule. The command cannot write into
 * the rule, so it names the line. It stays a comment: what a person has forbidden by name needs a
 * person. */
#include <jansson.h>

#include "cli/audit/suggest.h"

#define EXCEPTS_MAX 40 /* shown; --json has all */
#define NEIGHBORS 16   /* asks that are looked at for the same line */
#define NAME_MAX_SHOWN (4 * POLICY_NAME_MAX)

/* True if the ask was refused by a deny rule of the policy's author, and nothing else speaks
 * against it. Rules of the floor ("floor:...") are not the author's to change. */
static bool is_excepted(const struct suggest_ask *ask)
{
	return ask->exclusion == SUGGEST_DENY_RULE && ask->count > 0 && ask->port != 0 &&
	       ask->refused_by && *ask->refused_by && !strchr(ask->refused_by, POLICY_LAYER_MARK) &&
	       suggest_exclusion_of(ask, SLICE("")) == SUGGEST_FINE;
}

/* True if one of the asks just before gives the same line. The asks are sorted, so that those of
 * one destination are neighbors. */
static bool is_told(const struct suggest *s, size_t i)
{
	for (size_t k = i > NEIGHBORS ? i - NEIGHBORS : 0; k < i; k++)
		if (is_excepted(&s->asks[k]) &&
		        suggest_same_destination(&s->asks[k], &s->asks[i]) &&
		        strcmp(s->asks[k].refused_by, s->asks[i].refused_by) == 0)
			return true;
	return false;
}

void suggest_excepts_print(const struct suggest *s, FILE *out)
{
	char to[SUGGEST_DESTINATION_MAX], name[NAME_MAX_SHOWN];
	unsigned shown = 0;

	for (size_t i = 0; i < s->count && shown < EXCEPTS_MAX; i++) {
		const struct suggest_ask *ask = &s->asks[i];

		if (!is_excepted(ask) || is_told(s, i))
			continue;
		if (shown++ == 0)
			fputs("\n# Exceptions that would open what deny rules refuse. An allow "
			      "rule has "
			      "to match as well:\n",
			        out);
		fprintf(out, "#   rule %s:  except: [\"%s\"]\n",
		        slice_escape(slice_from_string(ask->refused_by), name, sizeof(name)),
		        suggest_destination_of(ask, to));
	}
}

json_t *suggest_excepts_json(const struct suggest *s)
{
	char to[SUGGEST_DESTINATION_MAX];
	json_t *all = json_array();

	for (size_t i = 0; i < s->count; i++)
		if (is_excepted(&s->asks[i]) && !is_told(s, i))
			json_array_append_new(all,
			        json_pack("{s:s, s:s, s:s, s:s}", "rule", s->asks[i].refused_by,
			                "except", suggest_destination_of(&s->asks[i], to), "policy",
			                s->asks[i].policy, "event", s->asks[i].event));
	return all;
}
