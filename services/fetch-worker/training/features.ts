/**
 * The numbers that the trees for blocks may ask for: those of blocks that were worth most when all were offered, and of their
 * pages only such as tell one kind of page from another. With more of the latter the trees learn pages by heart: each page
 * has a number of words that no other has.
 */
export const askedFor: ReadonlySet<string> = new Set(
  `
  after h1; after heading; around caption; around comment; around faq; around foot; around forum; around head;
  around hidden; around meta; around modal; around nav; around price; around product; around review;
  around search; around side; around signup; begins in a; begins in span; below root 0; below root 1;
  below root 2; below root 3; beside 1; capitals; characters; comma rate; depth; digits; ends sentence; from end;
  from start; heading at -1; heading at -2; heading level; heading says comment; heading says rel; in article;
  in aside; in blockquote; in button; in code; in dialog; in dl; in figcaption; in figure; in footer;
  in given text; in header; in label; in li; in main; in nav; in ol; in pre; in root 0; in root 1; in root 2;
  in root 3; in section; in ul; is dd; is div; is li; is p; link share; link share at -1; link share at -3;
  link share at 1; link share at 2; link share of tenth; link share of third; link share up 0; link share up 1;
  link share up 2; link share up 3; link share up 4; links; mean words of its kind; mean words of tenth;
  mean words of third; mean words up 0; mean words up 1; mean words up 2; mean words up 3; mean words up 4;
  near byline; near caption; near comment; near content; near faq; near foot; near form; near hidden; near meta;
  near modal; near nav; near review; of its kind; position; running before; running density of tenth;
  running density of third; running density up 0; running density up 1; running density up 2;
  running density up 3; running density up 4; running of tenth; running of third; running up 0; running up 1;
  running up 2; running up 3; running up 4; said again; said before; share of its kind; share up 0; share up 1;
  share up 2; share up 3; share up 4; stop rate; stops; stops at 1; twins up 0; twins up 1; twins up 2;
  twins up 3; twins up 4; under level; up from root 0; up from root 1; up from root 2; up from root 3;
  up to tenth; up to third; words; words at -1; words at 1; words at 2; words at 3; words before; words up 0;
  words up 1; words up 2; words up 3; words up 4; page running share; page words; page link share;
  page link words; page paragraph words; page item words; page long share; page date share; page price share;
  page root 2 words; page heading share; page is product; page articles; page code words; page at forum
  `
    .split(';')
    .map((name) => name.trim().replace(/\s+/g, ' ')),
)
