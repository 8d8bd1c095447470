// Bundles a module with all that it imports, CSS too, into one page. Loaded where an app has a module.
import { resolve } from 'node:path'
import { type BuildOptions, build, type Metafile } from 'esbuild'
import type { AppDefinition } from '../../core/index.ts'
import { htmlPage } from './html-page.ts'

export interface BundleSettings {
  /** Absolute. */
  readonly file: string
  readonly directory: string
  readonly minify: boolean
}

interface Bundled {
  readonly text: string
  readonly files: readonly string[]
  readonly parts: ReadonlyArray<readonly [file: string, bytes: number]>
}

/** Where the bundle would be written, if it were: nothing is. */
const NOWHERE = '/out'

/** What goes into the page as a data URI. */
const IMAGES = {
  '.svg': 'dataurl',
  '.png': 'dataurl',
  '.jpg': 'dataurl',
  '.gif': 'dataurl',
  '.webp': 'dataurl',
} as const

/** `process.env` is no part of a page: nothing of the host's environment is put in its place. */
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

/** Rejects with esbuild's own error. */
export async function bundlePage(app: AppDefinition, settings: BundleSettings): Promise<Bundled> {
  const { outputFiles, metafile } = await build(optionsFor(settings))
  const textOf = (end: string) => outputFiles.find(({ path }) => path.endsWith(end))?.text ?? ''
  return {
    text: htmlPage(app.title ?? app.name, { script: textOf('.js'), style: textOf('.css') }),
    files: Object.keys(metafile.inputs).map(file => resolve(settings.directory, file)),
    parts: partsOf(metafile),
  }
}

/** Bytes in the page by input, the largest first. */
function partsOf({ outputs }: Metafile): Array<readonly [file: string, bytes: number]> {
  const bytes = new Map<string, number>()
  for (const { inputs } of Object.values(outputs)) {
    for (const [file, { bytesInOutput }] of Object.entries(inputs)) {
      bytes.set(file, (bytes.get(file) ?? 0) + bytesInOutput)
    }
  }
  return [...bytes].filter(([, count]) => count > 0).sort(([, one], [, other]) => other - one)
}
