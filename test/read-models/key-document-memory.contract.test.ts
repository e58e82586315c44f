import type { KeyDocument } from '../../shared/read-models/key-document.ts';
import { memoryDocument } from '../support/memory-feed.ts';
import { describeKeyDocument } from './describe-key-document.ts';

const documents = new Map<string, KeyDocument>();

describeKeyDocument({
  name: 'memory',
  open: (name) => {
    const document = documents.get(name) ?? memoryDocument();
    documents.set(name, document);
    return document;
  },
});
