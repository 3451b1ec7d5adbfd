// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Burnable} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Burnable.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {AccessControlDefaultAdminRules} from
    "@openzeppelin/contracts/access/extensions/AccessControlDefaultAdminRules.sol";

/// @title The work token.
/// @notice It cannot be paused: holders can always leave. The one privileged act is minting, which the
/// EmissionController alone may do. Launch ends with the admin renounced, so minters are fixed for good.
/// @dev Invariant: totalSupply = genesis supply + sum of mints - sum of burns.
contract TallyToken is ERC20, ERC20Burnable, ERC20Permit, AccessControlDefaultAdminRules {
    /// @notice May mint. Held by the EmissionController and nobody else.
    bytes32 public constant MINTER_ROLE = keccak256("MINTER_ROLE");

    /// @param admin Appoints the minter at launch, then renounces.
    /// @param adminDelayS Seconds between the two steps of renouncing.
    /// @param genesisHolder Receives the supply that exists before the first epoch.
    /// @param genesisSupply That supply, in token units (10^-8).
    constructor(address admin, uint48 adminDelayS, address genesisHolder, uint256 genesisSupply)
        ERC20("Tally", "TLY")
        ERC20Permit("Tally")
        AccessControlDefaultAdminRules(adminDelayS, admin)
    {
        _mint(genesisHolder, genesisSupply);
    }

    /// @notice 8 decimals, the unit of TOKEN in the ledger: nothing is ever scaled.
    function decimals() public pure override returns (uint8) {
        return 8;
    }

    /// @notice Creates tokens.
    /// @param to Receives them.
    /// @param amount Token units.
    function mint(address to, uint256 amount) external onlyRole(MINTER_ROLE) {
        _mint(to, amount);
    }
}
