/* SPDX-License-Identifier: Apache-2.0 */
/* Reads paths from their end, because a repository's path may have any number of segments. */
#include "policy/decide/git_request.h"

#define S(text)                        \
	{                              \
		text, sizeof(text) - 1 \
	}
static const struct {
	struct slice end;
	enum git_service service;
} services[] = {{S("/info/refs"), GIT_REFS}, {S("/git-upload-pack"), GIT_FETCH},
        {S("/git-receive-pack"), GIT_PUSH}, {S("/info/lfs/objects/batch"), GIT_LFS_BATCH},
        {S("/info/lfs/locks"), GIT_LFS_LOCKS}, {S("/info/lfs/locks/verify"), GIT_LFS_VERIFY}};
static const struct slice locks = S("/info/lfs/locks"), unlock = S("/unlock"), git = S(".git");
#undef S

/* Takes the end off the text. Returns false if the text does not end so. */
static bool take_end(struct slice *text, struct slice end, bool fold)
{
	struct slice tail;

	if (text->n < end.n)
		return false;
	tail = slice_of(text->p + text->n - end.n, end.n);
	if (fold ? !slice_equals_ignoring_case(tail, end) : !slice_equals(tail, end))
		return false;
	text->n -= end.n;
	return true;
}

enum git_service git_request_read(struct slice path, bool fold, struct slice *repository)
{
	struct slice rest = path;

	for (size_t i = 0; i < sizeof(services) / sizeof(*services); i++)
		if (take_end(&rest, services[i].end, fold)) {
			*repository = rest;
			return rest.n ? services[i].service : GIT_NONE;
		}
	*repository = SLICE("");
	if (!take_end(&rest, unlock, fold))
		return GIT_NONE;
	while (rest.n && rest.p[rest.n - 1] != '/') /* the lock's id */
		rest.n--;
	if (rest.n == 0 || rest.p + rest.n == path.p + path.n - unlock.n)
		return GIT_NONE;
	rest.n--;
	if (!take_end(&rest, locks, fold) || rest.n == 0)
		return GIT_NONE;
	*repository = rest;
	return GIT_LFS_UNLOCK;
}

struct slice git_request_bare(struct slice repository, bool fold)
{
	struct slice rest = repository;

	return take_end(&rest, git, fold) ? rest : repository;
}

bool git_request_is_plain(struct slice repository)
{
	for (size_t i = 0; i < repository.n; i++) {
		char c = repository.p[i], next = i + 1 < repository.n ? repository.p[i + 1] : '/';
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (c == '/' ? next == '/'
		             : !letter && !(c >= '0' && c <= '9') &&
		                        slice_find_byte(SLICE("-._~+@"), c) < 0)
			return false;
	}
	return repository.n > 1 && repository.p[0] == '/';
}
