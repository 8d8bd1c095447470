// One HTML document of a script and a style, which stay what they are inside of it.

/** For the text of an element. */
const escapeText = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;')

/**
 * A script that no tokenizer of HTML leaves early, and that runs as before. `</script` would end the element: it stands in
 * strings, regular expressions and comments alone, for the bundler writes operators apart, and there the escape means the same.
 * After `<!--` and `<script` the end tag would not end it, until `-->`, which a comment brings.
 */
export function inScript(script: string): string {
  const closed = script.replace(/<\/(?=script)/gi, '<\\/')
  return closed.includes('<!--') ? `${closed}\n//-->\n` : closed
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
