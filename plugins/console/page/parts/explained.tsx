// The text of `mcp-host explain`.
import type { Explanation, Reply } from '../../api.ts'
import type { Resource } from '../data/resource.ts'
import { CodeBlock, Commands } from './copy.tsx'
import { Loaded } from './states.tsx'

export const Explained = ({ from }: { readonly from: Resource<Reply<Explanation>> }) => (
  <Loaded from={from}>
    {({ lines, command }) => (
      <>
        <CodeBlock text={lines.join('\n')} what="the explanation" />
        <Commands list={[command]} />
      </>
    )}
  </Loaded>
)
