// SPDX-License-Identifier: LGPL-2.1-or-later
// Shows the cards that have all the words of the search box, while they are typed.
'use strict';

(() => {
  const box = document.getElementById('query');
  const count = document.getElementById('count');
  const nothing = document.getElementById('nothing');

  // Neither case nor accents matter.
  const fold = (text) => text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();

  const sections = Array.from(document.querySelectorAll('main > section'), (section) => {
    const name = section.querySelector('h2 bdi').textContent;
    return {
      element: section,
      cards: Array.from(section.querySelectorAll('.cues > li'), (card) => {
        const text = card.querySelector('.text');
        return {
          element: card,
          text,
          words: fold([name, card.querySelector('.times').textContent, text.textContent].join('\n')),
        };
      }),
    };
  });
  const total = sections.reduce((sum, section) => sum + section.cards.length, 0);

  // Marks the words in the captions that are shown; only where the browser can do so without changing
  // the page.
  const highlight = (cards, words) => {
    if (!window.Highlight || !CSS.highlights) return;
    const found = new Highlight();
    for (const { text } of words.length > 0 ? cards : []) {
      const node = text.firstChild;
      const lower = node ? node.data.toLowerCase() : '';
      if (!node || lower.length !== node.data.length) continue;
      for (const word of words) {
        for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, at + word.length)) {
          const range = new Range();
          range.setStart(node, at);
          range.setEnd(node, at + word.length);
          found.add(range);
        }
      }
    }
    CSS.highlights.set('found', found);
  };

  const filter = () => {
    const words = fold(box.value).split(/\s+/).filter(Boolean);
    const shown = [];
    for (const section of sections) {
      let any = false;
      for (const card of section.cards) {
        const good = words.every((word) => card.words.includes(word));
        card.element.hidden = !good;
        any ||= good;
        if (good) shown.push(card);
      }
      section.element.hidden = !any;
    }
    count.value = words.length > 0 ? `${shown.length} of ${total}` : '';
    nothing.hidden = shown.length > 0 || words.length === 0;
    highlight(shown, words);
  };

  box.addEventListener('input', filter);
  document.addEventListener('keydown', (event) => {
    if (event.key === '/' && document.activeElement !== box && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      box.focus();
      box.select();
    } else if (event.key === 'Escape' && box.value !== '') {
      box.value = '';
      filter();
    }
  });
  // Without scripts there is nothing to search with.
  box.closest('search').hidden = false;
  // A browser that goes back to the page may have kept what was typed.
  filter();
})();
