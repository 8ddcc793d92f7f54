/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module that stands before another one (REAL_MODULE) and does what a file (SPY_MODE) says: what
 * a broken or hostile module of a token does. It notes each login in SPY_LOG.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

#include "token/cryptoki.h"

static struct ck_functions own;
static const struct ck_functions *real;

static int mode_is(const char *name)
{
	char text[64] = "";
	FILE *f = fopen(getenv("SPY_MODE"), "r");

	if (f) {
		if (!fgets(text, sizeof(text), f))
			text[0] = 0;
		fclose(f);
	}
	return strcmp(text, name) == 0;
}

static void note(const char *what, int error)
{
	FILE *f = fopen(getenv("SPY_LOG"), "a");

	if (f) {
		fprintf(f, "%s %d\n", what, error);
		fclose(f);
	}
}

#define TRY(name, call)                             \
	do {                                        \
		errno = 0;                          \
		note(name, (call) < 0 ? errno : 0); \
	} while (0)

/* What such code must not be able to do here. */
static void probe(void)
{
	char *argv[] = {"sh", NULL};

	TRY("ip", socket(AF_INET, SOCK_STREAM, 0));
	TRY("ipv6", socket(AF_INET6, SOCK_DGRAM, 0));
	TRY("netlink", socket(AF_NETLINK, SOCK_RAW, 0));
	TRY("packet", socket(AF_PACKET, SOCK_RAW, 0));
	TRY("vsock", socket(40, SOCK_STREAM, 0));
	TRY("write", open(getenv("SPY_OUTSIDE"), O_WRONLY | O_CREAT, 0600));
	TRY("root.key", open(getenv("SPY_SECRET"), O_RDONLY));
	TRY("memory", open("/proc/1/mem", O_RDWR));
	TRY("exec", execve("/bin/sh", argv, NULL));
	TRY("fork", fork());
	TRY("ptrace", ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
	TRY("kill", kill(getppid(), SIGTERM));
	TRY("root", setuid(0));
}

static ck_rv get_token_info(ck_ulong slot, struct ck_token_info *info)
{
	ck_rv rv = real->get_token_info(slot, info);

	if (mode_is("final-try"))
		info->flags |= CKF_USER_PIN_FINAL_TRY;
	if (mode_is("locked"))
		info->flags |= CKF_USER_PIN_LOCKED;
	if (mode_is("pad"))
		info->flags |= CKF_PROTECTED_AUTHENTICATION_PATH;
	return rv;
}

static ck_rv login(ck_ulong session, ck_ulong user, const ck_byte *pin, ck_ulong n)
{
	note("login", 0);
	if (mode_is("hang-login"))
		for (;;)
			pause();
	if (mode_is("crash-login"))
		abort();
	if (mode_is("probe"))
		probe();
	return real->login(session, user, pin, n);
}

static ck_rv sign(ck_ulong session, const ck_byte *data, ck_ulong n, ck_byte *out, ck_ulong *out_n)
{
	ck_rv rv;

	if (mode_is("hang-sign"))
		for (;;)
			pause();
	if (mode_is("crash-sign"))
		abort();
	if (mode_is("removed"))
		return CKR_DEVICE_REMOVED;
	rv = real->sign(session, data, n, out, out_n);
	if (mode_is("garbage"))
		out[0] ^= 1;
	if (mode_is("short"))
		*out_n = 1;
	if (mode_is("long"))
		*out_n = 1u << 20;
	return rv;
}

ck_rv C_GetFunctionList(const struct ck_functions **list);
ck_rv C_GetFunctionList(const struct ck_functions **list)
{
	void *library = dlopen(getenv("REAL_MODULE"), RTLD_NOW);
	ck_rv (*get)(const struct ck_functions **list) = NULL;

	if (library)
		*(void **)&get = dlsym(library, "C_GetFunctionList");
	if (!get || get(&real) != CKR_OK)
		return CKR_FUNCTION_FAILED;
	own = *real;
	own.get_token_info = get_token_info;
	own.login = login;
	own.sign = sign;
	*list = &own;
	return CKR_OK;
}
