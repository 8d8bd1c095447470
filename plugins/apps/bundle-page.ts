// Bundles a module with its imports and CSS into one HTML page. Loaded only for apps with a module.
import { resolve } from 'node:path'
import { type BuildOptions, build, type Metafile } from 'esbuild'
import type { AppDefinition } from './define-app.ts'

export interface BundleSettings {
  readonly file: string
  readonly directory: string
  readonly minify: boolean
}

/** An output path that esbuild requires; nothing is written. */
const NOWHERE = '/out'

const IMAGES = {
  '.svg': 'dataurl',
  '.png': 'dataurl',
  '.jpg': 'dataurl',
  '.gif': 'dataurl',
  '.webp': 'dataurl',
} as const

/** `define` is not set, because the environment of the host must not get into a page. */
const optionsFor = ({ file, directory, minify }: BundleSettings) =>
  ({
    entryPoints: [file],
    absWorkingDir: directory,
    bundle: true,
    write: false,
    outdir: NOWHERE,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    charset: 'utf8',
    minify,
    metafile: true,
    loader: IMAGES,
    logLevel: 'silent',
  }) as const satisfies BuildOptions

export async function bundlePage(app: AppDefinition, settings: BundleSettings) {
  const { outputFiles, metafile } = await build(optionsFor(settings))
  const textOf = (end: string) => outputFiles.find(({ path }) => path.endsWith(end))?.text ?? ''
  return {
    text: htmlPage(app.title ?? app.name, { script: textOf('.js'), style: textOf('.css') }),
    files: Object.keys(metafile.inputs).map(file => resolve(settings.directory, file)),
    parts: partsOf(metafile),
  }
}

function partsOf({ outputs }: Metafile): Array<readonly [file: string, bytes: number]> {
  const bytes = new Map<string, number>()
  for (const { inputs } of Object.values(outputs)) {
    for (const [file, { bytesInOutput }] of Object.entries(inputs)) {
      bytes.set(file, (bytes.get(file) ?? 0) + bytesInOutput)
    }
  }
  return [...bytes].filter(([, count]) => count > 0).sort(([, one], [, other]) => other - one)
}

/** Escapes `</script`, which would end the element. In a bundle, the escape has the same meaning wherever it occurs. */
function inScript(script: string): string {
  const closed = script.replace(/<\/(?=script)/gi, '<\\/')
  return closed.includes('<!--') ? `${closed}\n//-->\n` : closed
}

export function htmlPage(
  title: string,
  { script, style }: { readonly script: string; readonly style: string },
): string {
  const head = [
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${title.replace(/&/g, '&amp;').replace(/</g, '&lt;')}</title>`,
    ...(style === '' ? [] : [`<style>\n${style.replace(/<\/(?=style)/gi, '<\\/')}</style>`]),
  ]
  const body = ['<main id="app"></main>', `<script type="module">\n${inScript(script)}</script>`]
  return `<!doctype html>\n<html>\n<head>\n${head.join('\n')}\n</head>\n<body>\n${body.join('\n')}\n</body>\n</html>\n`
}
