/* SPDX-License-Identifier: Apache-2.0 */
/* What an opened image says about secrets in requests. */
#include <stdio.h>

#include "policy/image/image.h"

static struct dlp_settings settings_of(const struct image_dlp *d)
{
	return (struct dlp_settings){d->mode, d->except};
}

void policy_dlp(const struct policy *policy, uint32_t rule, struct dlp_settings *out)
{
	uint32_t low = 0, high = image_count(policy, SECTION_DLPS);

	*out = (struct dlp_settings){.mode = DLP_OFF};
	if (high == 0)
		return;
	if (image_dlp_at(policy, 0)->rule == POLICY_NONE)
		*out = settings_of(image_dlp_at(policy, low++));
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct image_dlp *d = image_dlp_at(policy, middle);

		if (d->rule == rule)
			*out = settings_of(d);
		if (d->rule < rule)
			low = middle + 1;
		else
			high = d->rule == rule ? low : middle;
	}
	if (policy_mode(policy) == POLICY_OBSERVE && out->mode == DLP_BLOCK)
		out->mode = DLP_ALERT;
}

const char *policy_dlp_text(const struct dlp_settings *settings, char out[POLICY_DLP_TEXT_MAX])
{
	size_t n = (size_t)snprintf(
	        out, POLICY_DLP_TEXT_MAX, "%s", dlp_mode_name((enum dlp_mode)settings->mode));
	const char *before = ", except ";

	for (uint32_t i = 0; i < dlp_format_count() && n < POLICY_DLP_TEXT_MAX; i++) {
		if (!dlp_set_has(&settings->except, i))
			continue;
		n += (size_t)snprintf(
		        out + n, POLICY_DLP_TEXT_MAX - n, "%s%s", before, dlp_format_name(i));
		before = ", ";
	}
	return out;
}
