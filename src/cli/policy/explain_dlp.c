/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what becomes of secrets in an allowed request. */
#include "cli/policy/explain.h"

static bool is_looked_for(const struct explain *x, struct dlp_settings *out)
{
	policy_dlp(&x->loaded.policy, x->decision.rule, out);
	return x->decision.verdict == POLICY_ALLOW && !x->connection && !x->relayed &&
	       out->mode != DLP_OFF;
}

void explain_dlp_text(const struct explain *x)
{
	struct dlp_settings settings;
	char text[POLICY_DLP_TEXT_MAX];

	if (is_looked_for(x, &settings))
		printf("dlp: %s\n", policy_dlp_text(&settings, text));
}

void explain_dlp_json(const struct explain *x, struct json *j)
{
	struct dlp_settings settings;

	if (!is_looked_for(x, &settings))
		return;
	json_object(j, "dlp");
	json_literal(j, "mode", dlp_mode_name((enum dlp_mode)settings.mode));
	json_array(j, "except");
	for (uint32_t i = 0; i < dlp_format_count(); i++)
		if (dlp_set_has(&settings.except, i))
			json_literal(j, NULL, dlp_format_name(i));
	json_end_array(j);
	json_end_object(j);
}
