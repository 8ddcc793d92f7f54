/* SPDX-License-Identifier: Apache-2.0 */
/* Which presets exist: those of the directory, or, where it cannot be read, those that vethguard
 * comes with. */
#include "policy/credentials/source.h"
#include "policy/load/loader.h"

static const char *const preset_names[] = {"pypi", "npm", "debian", "github", "crates", "golang",
        "docker-hub", "huggingface", "openai", "anthropic", "github-push", "claude-code",
        "claude-code-token", "codex", "gemini-cli", "opencode", "qwen-code", "cline", "copilot",
        "pi", "agent-updates", NULL};

const char *const *load_preset_names(const struct loader *l, struct load_presets *room)
{
	room->found.count = 0;
	if (l->reader->presets && l->reader->preset_dir)
		l->reader->presets(l->reader->preset_dir, &room->found);
	for (size_t i = 0; i < room->found.count; i++)
		room->names[i] = room->found.names[i];
	room->names[room->found.count] = NULL;
	return room->found.count ? room->names : preset_names;
}

bool load_comes_with_preset(struct slice name)
{
	return load_is_among(name, preset_names);
}
