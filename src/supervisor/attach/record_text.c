/* SPDX-License-Identifier: Apache-2.0 */
/* Describes what a sandbox was attached to, for the audit log: a later reader finds a name whose
 * namespace or container is long gone. */
#include <stdarg.h>
#include <stdio.h>

#include "supervisor/attach/record.h"

/* Text that does not fit is left out. */
struct text {
	char *p;
	size_t n, size;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(t->p + t->n, t->size - t->n, format, arguments);
	va_end(arguments);
	if (n > 0)
		t->n = t->n + (size_t)n < t->size ? t->n + (size_t)n : t->size - 1;
}

static void add_pairs(struct text *t, const char *what, const struct attach_pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++)
		add(t, ", %s %s=%s", what, pairs->items[i].key, pairs->items[i].value);
}

void attach_record_describe(const struct attach_record *r, char *out, size_t size)
{
	struct text t = {out, 0, size};

	switch (r->kind) {
	case ATTACH_INTERFACE:
		add(&t, "interface %s", r->interface);
		break;
	case ATTACH_NETNS:
		add(&t, "netns %s", r->netns);
		break;
	case ATTACH_LISTEN:
		add(&t, "socket %s", r->listen.path);
		break;
	case ATTACH_SESSION:
		add(&t, "session");
		break;
	default:
		add(&t, "pid %d", (int)r->pid);
	}
	if (r->container.id[0])
		add(&t, ", container %s (%s %s)", r->container.name, r->container.engine,
		        r->container.id);
	add(&t, ", policy %s", r->policy);
	add_pairs(&t, "label", &r->labels);
	add_pairs(&t, "var", &r->vars);
}
