/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of members: the head is a member of no struct, an unlinked member points to itself. */
#ifndef VETHGUARD_SRC_PROXY_LIST_H
#define VETHGUARD_SRC_PROXY_LIST_H

#include <stdbool.h>

struct list {
	struct list *prev, *next;
};
static inline void list_init(struct list *l)
{
	l->prev = l->next = l;
}
static inline bool list_is_empty(const struct list *l)
{
	return l->next == l;
}
static inline void list_append(struct list *head, struct list *l)
{
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}
static inline void list_remove(struct list *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	list_init(l);
}

#endif
