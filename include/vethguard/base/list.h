/* SPDX-License-Identifier: Apache-2.0 */
/* list: members in a ring, each with its own struct list; the head is a struct list that is a member of nothing. A
 * member that is in no list is zero, as calloc() leaves it. */
#ifndef VETHGUARD_BASE_LIST_H
#define VETHGUARD_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *prev, *next;
};

/* From a member to the struct around it. */
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline void list_init(struct list *head)
{
	head->prev = head->next = head;
}

static inline bool list_is_empty(const struct list *head)
{
	return head->next == head;
}

static inline bool list_has(const struct list *member) /* in any list */
{
	return member->next != NULL;
}

static inline void list_append(struct list *head, struct list *member)
{
	member->prev = head->prev;
	member->next = head;
	head->prev->next = member;
	head->prev = member;
}

static inline void list_remove(struct list *member) /* does nothing if it is in no list */
{
	if (!member->next)
		return;
	member->prev->next = member->next;
	member->next->prev = member->prev;
	member->prev = member->next = NULL;
}

/* Moves all members of from to to, which is initialized here. */
static inline void list_move(struct list *from, struct list *to)
{
	list_init(to);
	if (list_is_empty(from))
		return;
	*to = *from;
	to->next->prev = to->prev->next = to;
	list_init(from);
}

#endif
