/* SPDX-License-Identifier: Apache-2.0 */
/* Reads dlp: the mode "block", "alert" or "off", or a mapping with the mode and the formats that
 * pass. */
#include "policy/rules/dlp.h"

static const char *const modes[] = {
        [DLP_OFF] = "off", [DLP_ALERT] = "alert", [DLP_BLOCK] = "block", NULL};
_Static_assert(sizeof(modes) / sizeof(modes[0]) == DLP_MODE_COUNT + 1, "a word per mode");

static bool take_mode(struct tree *tree, const struct tree_node *node, struct dlp_settings *out)
{
	int mode = tree_word(tree, node, "dlp", modes);

	if (mode < 0)
		return false;
	out->mode = (uint32_t)mode;
	return true;
}

static bool take_format(struct tree *tree, const struct tree_node *node, struct dlp_settings *out)
{
	const char *names[DLP_FORMATS_MAX + 1] = {NULL};
	const struct diag_known known = {names, "the formats are", NULL, NULL};
	char quoted[TREE_QUOTE_MAX], hint[DIAG_HINT_MAX];
	struct slice name;
	uint32_t format;

	if (!tree_text(tree, node, "except", POLICY_NAME_MAX, &name))
		return false;
	format = dlp_format_find(name);
	if (format != DLP_NONE) {
		dlp_set_add(&out->except, format);
		return true;
	}
	for (uint32_t i = 0; i < dlp_format_count(); i++)
		names[i] = dlp_format_name(i);
	tree_error(tree, node, "except: there is no format %s%s", tree_quote(name, quoted),
	        diag_hint(name, &known, hint));
	return false;
}

bool load_dlp(struct tree *tree, struct tree_node *node, struct dlp_settings *out)
{
	static const char *const keys[] = {"mode", "except", NULL};
	struct tree_node *mode, *except;
	struct tree_item single;

	*out = (struct dlp_settings){.mode = DLP_BLOCK};
	if (node->kind == TREE_SCALAR)
		return take_mode(tree, node, out);
	if (!tree_is_map(tree, node, "dlp") || !tree_check_keys(tree, node, keys, NULL))
		return false;
	mode = tree_get(node, "mode");
	except = tree_get(node, "except");
	if (mode && !take_mode(tree, mode, out))
		return false;
	if (!except)
		return true;
	for (const struct tree_item *item = tree_items(tree, except, "except", &single); item;
	        item = item->next)
		if (!take_format(tree, item->value, out))
			return false;
	return true;
}
