// One HTML document of a script and a style, which stay what they are inside of it.

/** For the text of an element. */
const escapeText = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;')

/**
 * A script that no tokenizer of HTML leaves early, and that runs as before. `</script` would end the element; after `<!--` and
 * `<script` not even the end tag would. Both can stand in strings, templates, regular expressions and comments alone, for the
 * bundler writes operators apart; there the escapes mean the same.
 */
export function inScript(script: string): string {
  const closed = script.replace(/<\/(?=script)/gi, '<\\/')
  if (!/<!--[\s\S]*<script[\s/>]/i.test(closed)) return closed
  // A backslash before the `<` would be escaped by ours: of an odd number the last one is not needed.
  return closed.replace(/(\\*)<!--/g, (_, slashes: string) => `${slashes.slice(slashes.length % 2)}\\x3C!--`)
}

/** The same of a style, which `</style` alone ends. */
export const inStyle = (style: string): string => style.replace(/<\/(?=style)/gi, '<\\/')

/** The page. Its script finds `<main id="app">`. */
export function htmlPage(
  title: string,
  { script, style }: { readonly script: string; readonly style: string },
): string {
  const head = [
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${escapeText(title)}</title>`,
    ...(style === '' ? [] : [`<style>\n${inStyle(style)}</style>`]),
  ]
  const body = ['<main id="app"></main>', `<script type="module">\n${inScript(script)}</script>`]
  return `<!doctype html>\n<html>\n<head>\n${head.join('\n')}\n</head>\n<body>\n${body.join('\n')}\n</body>\n</html>\n`
}
