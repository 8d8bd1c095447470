// Text that clients or upstream servers control.
import { pieces } from '../data/text.ts'

interface Shown {
  readonly value: string
  readonly most?: number
  readonly lines?: boolean
}

export const Text = ({ value, most = 4_000, lines = false }: Shown) => (
  <bdi>
    {pieces(value, { most, lines }).map(({ text, isEscaped }, index) =>
      isEscaped ? (
        <span class="escaped" key={index}>
          {text}
        </span>
      ) : (
        text
      ),
    )}
  </bdi>
)

export const Code = ({ value, most = 200 }: Shown) => (
  <code>
    <Text value={value} most={most} />
  </code>
)

export const Optional = ({ value, none = '–' }: { readonly value: string | undefined; readonly none?: string }) =>
  value === undefined || value === '' ? <span class="muted">{none}</span> : <Text value={value} />
