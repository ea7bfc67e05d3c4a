/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "heap-watch.h"

#include <malloc.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

static gssize in_use, most;

static void
count (gssize n)
{
  gssize now = __atomic_add_fetch (&in_use, n, __ATOMIC_RELAXED);

  if (now > __atomic_load_n (&most, __ATOMIC_RELAXED))
    __atomic_store_n (&most, now, __ATOMIC_RELAXED);
}

void
heap_watch_begin (void)
{
  in_use = most = 0;
}

gsize
heap_watch_end (void)
{
  return most;
}

#ifdef SANITIZED

#include <sanitizer/allocator_interface.h>

static void
on_malloc (const volatile void *place, size_t size)
{
  count (size);
}

static void
on_free (const volatile void *place)
{
  if (place)
    count (-(gssize) __sanitizer_get_allocated_size ((const void *) place));
}

static void __attribute__ ((constructor)) install (void)
{
  __sanitizer_install_malloc_and_free_hooks (on_malloc, on_free);
}

#else

/* The C library's own functions, under the names that stay when a program defines the others. */
void *__libc_malloc (size_t size);
void *__libc_calloc (size_t n, size_t size);
void *__libc_realloc (void *place, size_t size);
void *__libc_memalign (size_t alignment, size_t size);
void __libc_free (void *place);

static void *
counted (void *place)
{
  if (place)
    count (malloc_usable_size (place));
  return place;
}

void *
malloc (size_t size)
{
  return counted (__libc_malloc (size));
}

void *
calloc (size_t n, size_t size)
{
  return counted (__libc_calloc (n, size));
}

void *
realloc (void *place, size_t size)
{
  gssize before = place ? malloc_usable_size (place) : 0;
  void *moved = __libc_realloc (place, size);

  if (moved || size == 0)
    count (-before);
  return counted (moved);
}

int
posix_memalign (void **place, size_t alignment, size_t size)
{
  *place = counted (__libc_memalign (alignment, size));
  return *place ? 0 : 12; /* ENOMEM */
}

void
free (void *place)
{
  if (place)
    count (-(gssize) malloc_usable_size (place));
  __libc_free (place);
}

#endif
