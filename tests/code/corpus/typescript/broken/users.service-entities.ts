import { Injectable, NotFoundException } from &#x27;@nestjs/common&#x27;;
import { InjectRepository } from &#x27;@nestjs/typeorm&#x27;;
import type { Repository } from &#x27;typeorm&#x27;;
import { User } from &#x27;./user.entity&#x27;;

export interface Page&lt;T&gt; {
  readonly items: T[];
  total: number;
  next?: string;
}

type Filter = Partial&lt;Pick&lt;User, &#x27;email&#x27; | &#x27;role&#x27;&gt;&gt; &amp; { search?: string };

export enum Role {
  Admin = &#x27;admin&#x27;,
  Reader = &#x27;reader&#x27;,
}

@Injectable()
export class UsersService {
  private readonly cache = new Map&lt;string, User&gt;();

  constructor(
    @InjectRepository(User)
    private readonly users: Repository&lt;User&gt;,
  ) {}

  async find(filter: Filter = {}, page = 1): Promise&lt;Page&lt;User&gt;&gt; {
    const [items, total] = await this.users.findAndCount({
      where: { ...filter },
      take: 20,
      skip: (page - 1) * 20,
    });
    return { items, total, next: total &gt; page * 20 ? `?page=${page + 1}` : undefined };
  }

  async one(id: string): Promise&lt;User&gt; {
    const user = this.cache.get(id) ?? (await this.users.findOneBy({ id }));
    if (!user) {
      throw new NotFoundException(`user ${id}`);
    }
    this.cache.set(id, user);
    return user;
  }

  isAdmin(user: User): user is User &amp; { role: Role.Admin } {
    return user.role === Role.Admin;
  }
}
