/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor --config: what can be checked without the PIN of the token that holds a CA's key. No
 * module is loaded and no login is tried. A fault here keeps the daemon, but not `run`, from
 * starting sandboxes.
 */
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "vethguard/policy/config.h"

#define DEFAULT_USER "_vethguard-token"

static bool tell(struct doctor_finding *f, const char *remedy, const char *what, const char *which)
{
	doctor_tell(f, DOCTOR_NOTE, "%s %.300s", what, which);
	doctor_remedy(f, remedy);
	return false;
}

static bool see_module(struct doctor_finding *f, const struct config_token *t)
{
	struct stat st;

	return (stat(t->module, &st) == 0 && S_ISREG(st.st_mode)) ||
	       tell(f,
	               "Install the token's library, or name its path as ca.token.module "
	               "('p11-kit list-modules').",
	               "there is no module", t->module);
}

static bool see_user(struct doctor_finding *f, const struct config_token *t)
{
	const char *name = t->user[0] ? t->user : DEFAULT_USER;

	return getpwnam(name) ||
	       tell(f,
	               "Make this user ('systemd-sysusers'), or name one who may use the token as "
	               "ca.token.user.",
	               "the module has no user", name);
}

static bool see_pin(struct doctor_finding *f, const struct config_token *t)
{
	struct stat st;

	if (!t->pin_file[0])
		return true;
	if (stat(t->pin_file, &st) < 0 || !S_ISREG(st.st_mode))
		return tell(f, "Write the user's PIN there, into a file of mode 0600.",
		        "there is no PIN", t->pin_file);
	return !(st.st_mode & (S_IRWXG | S_IRWXO)) ||
	       tell(f, "'chmod 0600' mends that; change the PIN if others have read it.",
	               "others may read or write the PIN", t->pin_file);
}

static bool see_folders(struct doctor_finding *f, const struct config_token *t)
{
	struct stat st;

	for (size_t i = 0; i < t->writable.count; i++)
		if (stat(config_token_text(&t->writable, i), &st) < 0)
			return tell(f, "Make it, or take it out of ca.token.writable.",
			        "there is no folder", config_token_text(&t->writable, i));
	return true;
}

void doctor_token(const char *path, struct doctor_finding *f)
{
	static struct config config;
	static struct diag_list diags;
	struct policy_file_facts facts = {0};
	struct policy_reader reader =
	        policy_reader_private_files(policy_default_preset_dir(), &facts);
	const struct config_token *t = &config.ca.token;

	f->subject = "token";
	config_init(&config);
	if (config_load(&reader, path, &config, &diags) == 0 && t->uri[0] && see_module(f, t) &&
	        see_user(f, t) && see_pin(f, t) && see_folders(f, t))
		doctor_tell(f, DOCTOR_OK,
		        "module, user and PIN of %.200s are there; whether the token takes the "
		        "PIN was not tried ('vethguard ca show' says what the daemon sees)",
		        t->uri);
	config_fini(&config);
}
